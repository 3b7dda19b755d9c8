export type Json =
  | string
  | number
  | boolean
  | null
  | { [key: string]: Json | undefined }
  | Json[]

export type Database = {
  shop: {
    Tables: {
      Empty: {
        Row: {}
        ComputedFields: never
        Insert: {}
        Update: {}
        Relationships: []
      }
      parcel: {
        Row: {
          a_state_whose_column_has_a_rather_long_name:
            | Database["shop"]["Enums"]["state"]
            | null
          id: number
          sender_id: number
          size: number | null
        }
        ComputedFields: never
        Insert: {
          a_state_whose_column_has_a_rather_long_name?:
            | Database["shop"]["Enums"]["state"]
            | null
          id?: number
          sender_id: number
          size?: number | null
        }
        Update: {
          a_state_whose_column_has_a_rather_long_name?:
            | Database["shop"]["Enums"]["state"]
            | null
          id?: number
          sender_id?: number
          size?: number | null
        }
        Relationships: [
          {
            foreignKeyName: "parcel_sender_id_fkey"
            columns: ["sender_id"]
            isOneToOne: false
            referencedRelation: "adult"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "parcel_sender_id_fkey"
            columns: ["sender_id"]
            isOneToOne: false
            referencedRelation: "person"
            referencedColumns: ["id"]
          },
        ]
      }
      passport: {
        Row: {
          issued: string
          number: string
          person_id: number
        }
        ComputedFields: never
        Insert: {
          issued?: string
          number: string
          person_id: number
        }
        Update: {
          issued?: string
          number?: string
          person_id?: number
        }
        Relationships: [
          {
            foreignKeyName: "passport_person_id_fkey"
            columns: ["person_id"]
            isOneToOne: true
            referencedRelation: "adult"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "passport_person_id_fkey"
            columns: ["person_id"]
            isOneToOne: true
            referencedRelation: "person"
            referencedColumns: ["id"]
          },
        ]
      }
      person: {
        Row: {
          born: string | null
          email: string
          home: Database["shop"]["CompositeTypes"]["place"] | null
          id: number
          notes: NonNullable<Json>
          state: Database["shop"]["Enums"]["state"]
          tags: string[] | null
          "user-id": string | null
          initials: string | null
          parcels_of: {
            a_state_whose_column_has_a_rather_long_name:
              | Database["shop"]["Enums"]["state"]
              | null
            id: number
            sender_id: number
            size: number | null
          } | null
        }
        ComputedFields: "initials" | "parcels_of"
        Insert: {
          born?: string | null
          email: string
          home?: Database["shop"]["CompositeTypes"]["place"] | null
          id?: never
          notes?: NonNullable<Json>
          state?: Database["shop"]["Enums"]["state"]
          tags?: string[] | null
          "user-id"?: string | null
        }
        Update: {
          born?: string | null
          email?: string
          home?: Database["shop"]["CompositeTypes"]["place"] | null
          id?: never
          notes?: NonNullable<Json>
          state?: Database["shop"]["Enums"]["state"]
          tags?: string[] | null
          "user-id"?: string | null
        }
        Relationships: []
      }
    }
    Views: {
      adult: {
        Row: {
          born: string | null
          email: string
          id: number
        }
        ComputedFields: never
        Insert: {
          born?: string | null
          email?: string | null
          id?: number | null
        }
        Update: {
          born?: string | null
          email?: string | null
          id?: number | null
        }
        Relationships: []
      }
      parcel_count: {
        Row: {
          parcels: number | null
          sender_id: number
        }
        ComputedFields: never
        Relationships: [
          {
            foreignKeyName: "parcel_sender_id_fkey"
            columns: ["sender_id"]
            isOneToOne: false
            referencedRelation: "adult"
            referencedColumns: ["id"]
          },
          {
            foreignKeyName: "parcel_sender_id_fkey"
            columns: ["sender_id"]
            isOneToOne: false
            referencedRelation: "person"
            referencedColumns: ["id"]
          },
        ]
      }
    }
    Functions: {
      clash:
        | {
            Args: { id: number }
            Returns: {
              error: true
            } & "Could not choose the best candidate function between: shop.clash(id => int4), shop.clash(id => text). Try renaming the parameters or the function itself in the database so function overloading can be resolved"
          }
        | {
            Args: { id: string }
            Returns: {
              error: true
            } & "Could not choose the best candidate function between: shop.clash(id => int4), shop.clash(id => text). Try renaming the parameters or the function itself in the database so function overloading can be resolved"
          }
      import: { Args: { "": Json }; Returns: undefined }
      initials: {
        Args: { "": Database["shop"]["Tables"]["person"]["Row"] }
        Returns: {
          error: true
        } & "the function shop.initials with parameter or with a single unnamed json/jsonb parameter, but no matches were found in the schema cache"
      }
      look_up:
        | { Args: { email: string; strict?: boolean }; Returns: string }
        | { Args: { id: number }; Returns: string }
      newest_parcel: {
        Args: Record<PropertyKey, never>
        Returns: {
          a_state_whose_column_has_a_rather_long_name:
            | Database["shop"]["Enums"]["state"]
            | null
          id: number
          sender_id: number
          size: number | null
        }
        SetofOptions: {
          from: "*"
          to: "parcel"
          isOneToOne: true
          isSetofReturn: false
        }
      }
      numbers: { Args: Record<PropertyKey, never>; Returns: number[] }
      parcels_of: {
        Args: {
          p: Omit<
            Database["shop"]["Tables"]["person"]["Row"],
            Database["shop"]["Tables"]["person"]["ComputedFields"]
          >
        }
        Returns: {
          a_state_whose_column_has_a_rather_long_name:
            | Database["shop"]["Enums"]["state"]
            | null
          id: number
          sender_id: number
          size: number | null
        }[]
        SetofOptions: {
          from: "shop.person"
          to: "parcel"
          isOneToOne: false
          isSetofReturn: true
        }
      }
      totals: {
        Args: { since?: string }
        Returns: {
          "per day": number
          total: number
        }[]
      }
    }
    Enums: {
      state:
        | "open"
        | "waiting for an answer"
        | 'say "no"'
        | "closed without any further explanation"
    }
    CompositeTypes: {
      place: {
        city: string | null
        "post-code": number | null
        kind: Database["shop"]["Enums"]["state"] | null
      }
    }
  }
  views: {
    Tables: {
      lamp: {
        Row: {
          code: string
          doubled: number | null
          extra: NonNullable<Json>
          id: number
          room: string
          state: Database["shop"]["Enums"]["state"]
          switch: Database["views"]["Enums"]["state"]
          watts: number | null
          bright: boolean | null
        }
        ComputedFields: "bright"
        Insert: {
          code: string
          doubled?: never
          extra: NonNullable<Json>
          id: number
          room: string
          state: Database["shop"]["Enums"]["state"]
          switch: Database["views"]["Enums"]["state"]
          watts?: number | null
        }
        Update: {
          code?: string
          doubled?: never
          extra?: NonNullable<Json>
          id?: number
          room?: string
          state?: Database["shop"]["Enums"]["state"]
          switch?: Database["views"]["Enums"]["state"]
          watts?: number | null
        }
        Relationships: []
      }
    }
    Views: {
      both: {
        Row: {
          room: string | null
        }
        ComputedFields: never
        Relationships: []
      }
      by_subquery: {
        Row: {
          n: number | null
          room: string
        }
        ComputedFields: never
        Relationships: []
      }
      by_table_expression: {
        Row: {
          id: number
          watts: number | null
        }
        ComputedFields: never
        Relationships: []
      }
      computed: {
        Row: {
          next: number | null
          text: string | null
          watts: number | null
        }
        ComputedFields: never
        Relationships: []
      }
      declared: {
        Row: {
          most: number
        }
        ComputedFields: never
        Relationships: []
      }
      fully_joined: {
        Row: {
          id: number | null
          room: string | null
        }
        ComputedFields: never
        Relationships: []
      }
      grouped: {
        Row: {
          n: number | null
          room: string
        }
        ComputedFields: never
        Relationships: []
      }
      in_sets: {
        Row: {
          room: string | null
          state: Database["shop"]["Enums"]["state"] | null
        }
        ComputedFields: never
        Relationships: []
      }
      kept: {
        Row: {
          id: number
          room: string
        }
        ComputedFields: never
        Relationships: []
      }
      outer_joined: {
        Row: {
          id: number
          other: number | null
          other_room: string | null
        }
        ComputedFields: never
        Relationships: []
      }
      over_views: {
        Row: {
          id: number
          other_room: string | null
          outer_id: number
        }
        ComputedFields: never
        Relationships: []
      }
      plain: {
        Row: {
          code: string
          extra: NonNullable<Json>
          id: number
          room: string
          switch: Database["views"]["Enums"]["state"]
          watts: number | null
        }
        ComputedFields: never
        Insert: {
          code?: string | null
          extra?: Json | null
          id?: number | null
          room?: string | null
          switch?: Database["views"]["Enums"]["state"] | null
          watts?: number | null
        }
        Update: {
          code?: string | null
          extra?: Json | null
          id?: number | null
          room?: string | null
          switch?: Database["views"]["Enums"]["state"] | null
          watts?: number | null
        }
        Relationships: []
      }
      right_joined: {
        Row: {
          id: number
          other: number | null
        }
        ComputedFields: never
        Relationships: []
      }
      taken: {
        Row: {
          n: number | null
          room: string
        }
        ComputedFields: never
        Insert: {
          n?: number | null
          room?: string | null
        }
        Relationships: []
      }
    }
    Functions: {
      bright: {
        Args: { "": Database["views"]["Tables"]["lamp"]["Row"] }
        Returns: {
          error: true
        } & "the function views.bright with parameter or with a single unnamed json/jsonb parameter, but no matches were found in the schema cache"
      }
      lamps_like: {
        Args: {
          at_least: number
          lamp: Omit<
            Database["views"]["Tables"]["lamp"]["Row"],
            Database["views"]["Tables"]["lamp"]["ComputedFields"]
          >
        }
        Returns: {
          code: string
          doubled: number | null
          extra: NonNullable<Json>
          id: number
          room: string
          state: Database["shop"]["Enums"]["state"]
          switch: Database["views"]["Enums"]["state"]
          watts: number | null
        }[]
        SetofOptions: {
          from: "*"
          to: "lamp"
          isOneToOne: false
          isSetofReturn: true
        }
      }
      room: {
        Args: { "": Database["views"]["Tables"]["lamp"]["Row"] }
        Returns: {
          error: true
        } & "the function views.room with parameter or with a single unnamed json/jsonb parameter, but no matches were found in the schema cache"
      }
    }
    Enums: {
      state: "on" | "off"
    }
    CompositeTypes: {
      [_ in never]: never
    }
  }
}

type DatabaseWithoutInternals = Omit<Database, "__InternalSupabase">

type DefaultSchema = DatabaseWithoutInternals[Extract<keyof Database, "shop">]

export type Tables<
  DefaultSchemaTableNameOrOptions extends
    | keyof (DefaultSchema["Tables"] & DefaultSchema["Views"])
    | { schema: keyof DatabaseWithoutInternals },
  TableName extends (DefaultSchemaTableNameOrOptions extends {
    schema: keyof DatabaseWithoutInternals
  }
    ? keyof (DatabaseWithoutInternals[DefaultSchemaTableNameOrOptions["schema"]]["Tables"] &
        DatabaseWithoutInternals[DefaultSchemaTableNameOrOptions["schema"]]["Views"])
    : never) = never,
> = DefaultSchemaTableNameOrOptions extends {
  schema: keyof DatabaseWithoutInternals
}
  ? (DatabaseWithoutInternals[DefaultSchemaTableNameOrOptions["schema"]]["Tables"] &
      DatabaseWithoutInternals[DefaultSchemaTableNameOrOptions["schema"]]["Views"])[TableName] extends {
      Row: infer R
    }
    ? R
    : never
  : DefaultSchemaTableNameOrOptions extends keyof (DefaultSchema["Tables"] &
        DefaultSchema["Views"])
    ? (DefaultSchema["Tables"] &
        DefaultSchema["Views"])[DefaultSchemaTableNameOrOptions] extends {
        Row: infer R
      }
      ? R
      : never
    : never

export type TablesInsert<
  DefaultSchemaTableNameOrOptions extends
    | keyof DefaultSchema["Tables"]
    | { schema: keyof DatabaseWithoutInternals },
  TableName extends (DefaultSchemaTableNameOrOptions extends {
    schema: keyof DatabaseWithoutInternals
  }
    ? keyof DatabaseWithoutInternals[DefaultSchemaTableNameOrOptions["schema"]]["Tables"]
    : never) = never,
> = DefaultSchemaTableNameOrOptions extends {
  schema: keyof DatabaseWithoutInternals
}
  ? DatabaseWithoutInternals[DefaultSchemaTableNameOrOptions["schema"]]["Tables"][TableName] extends {
      Insert: infer I
    }
    ? I
    : never
  : DefaultSchemaTableNameOrOptions extends keyof DefaultSchema["Tables"]
    ? DefaultSchema["Tables"][DefaultSchemaTableNameOrOptions] extends {
        Insert: infer I
      }
      ? I
      : never
    : never

export type TablesUpdate<
  DefaultSchemaTableNameOrOptions extends
    | keyof DefaultSchema["Tables"]
    | { schema: keyof DatabaseWithoutInternals },
  TableName extends (DefaultSchemaTableNameOrOptions extends {
    schema: keyof DatabaseWithoutInternals
  }
    ? keyof DatabaseWithoutInternals[DefaultSchemaTableNameOrOptions["schema"]]["Tables"]
    : never) = never,
> = DefaultSchemaTableNameOrOptions extends {
  schema: keyof DatabaseWithoutInternals
}
  ? DatabaseWithoutInternals[DefaultSchemaTableNameOrOptions["schema"]]["Tables"][TableName] extends {
      Update: infer U
    }
    ? U
    : never
  : DefaultSchemaTableNameOrOptions extends keyof DefaultSchema["Tables"]
    ? DefaultSchema["Tables"][DefaultSchemaTableNameOrOptions] extends {
        Update: infer U
      }
      ? U
      : never
    : never

export type Enums<
  DefaultSchemaEnumNameOrOptions extends
    | keyof DefaultSchema["Enums"]
    | { schema: keyof DatabaseWithoutInternals },
  EnumName extends (DefaultSchemaEnumNameOrOptions extends {
    schema: keyof DatabaseWithoutInternals
  }
    ? keyof DatabaseWithoutInternals[DefaultSchemaEnumNameOrOptions["schema"]]["Enums"]
    : never) = never,
> = DefaultSchemaEnumNameOrOptions extends {
  schema: keyof DatabaseWithoutInternals
}
  ? DatabaseWithoutInternals[DefaultSchemaEnumNameOrOptions["schema"]]["Enums"][EnumName]
  : DefaultSchemaEnumNameOrOptions extends keyof DefaultSchema["Enums"]
    ? DefaultSchema["Enums"][DefaultSchemaEnumNameOrOptions]
    : never

export type CompositeTypes<
  PublicCompositeTypeNameOrOptions extends
    | keyof DefaultSchema["CompositeTypes"]
    | { schema: keyof DatabaseWithoutInternals },
  CompositeTypeName extends (PublicCompositeTypeNameOrOptions extends {
    schema: keyof DatabaseWithoutInternals
  }
    ? keyof DatabaseWithoutInternals[PublicCompositeTypeNameOrOptions["schema"]]["CompositeTypes"]
    : never) = never,
> = PublicCompositeTypeNameOrOptions extends {
  schema: keyof DatabaseWithoutInternals
}
  ? DatabaseWithoutInternals[PublicCompositeTypeNameOrOptions["schema"]]["CompositeTypes"][CompositeTypeName]
  : PublicCompositeTypeNameOrOptions extends keyof DefaultSchema["CompositeTypes"]
    ? DefaultSchema["CompositeTypes"][PublicCompositeTypeNameOrOptions]
    : never

export const Constants = {
  shop: {
    Enums: {
      state: [
        "open",
        "waiting for an answer",
        'say "no"',
        "closed without any further explanation",
      ],
    },
  },
  views: {
    Enums: {
      state: ["on", "off"],
    },
  },
} as const
